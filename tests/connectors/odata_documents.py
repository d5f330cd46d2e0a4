"""Metadata documents of the tests: an ERP system's V2 service, and a V4 service with everything that V4 has."""

from __future__ import annotations

V2 = b"""<?xml version="1.0" encoding="utf-8"?>
<edmx:Edmx Version="1.0" xmlns:edmx="http://schemas.microsoft.com/ado/2007/06/edmx"
 xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"
 xmlns:sap="http://www.sap.com/Protocols/SAPData">
 <edmx:DataServices m:DataServiceVersion="2.0">
  <Schema Namespace="ERP" Alias="Self" xmlns="http://schemas.microsoft.com/ado/2008/09/edm">
   <EntityType Name="Order" sap:label="Sales order">
    <Key><PropertyRef Name="Number"/></Key>
    <Property Name="Number" Type="Edm.String" Nullable="false" MaxLength="10"
     sap:creatable="false" sap:label="Number"/>
    <Property Name="Customer" Type="Edm.String" MaxLength="8" sap:value-list="standard"/>
    <Property Name="Total" Type="Edm.Decimal" Precision="13" Scale="3"/>
    <Property Name="Big" Type="Edm.Int64"/>
    <Property Name="Small" Type="Edm.Byte"/>
    <Property Name="Weight" Type="Edm.Double"/>
    <Property Name="Placed" Type="Edm.DateTime" Precision="7"/>
    <Property Name="Day" Type="Edm.DateTime" sap:display-format="Date"/>
    <Property Name="Moment" Type="Edm.DateTimeOffset"/>
    <Property Name="Opens" Type="Edm.Time"/>
    <Property Name="Photo" Type="Edm.Binary" MaxLength="4"/>
    <Property Name="Tag" Type="Edm.Guid"/>
    <Property Name="Status" Type="Edm.String" DefaultValue="N"/>
    <Property Name="Changed" Type="Edm.DateTime" sap:creatable="false" sap:updatable="false"/>
    <Property Name="Home" Type="Self.Address" Nullable="false"/>
    <NavigationProperty Name="Items" Relationship="ERP.OrderItems" FromRole="Order" ToRole="Item"/>
    <NavigationProperty Name="Buyer" Relationship="ERP.OrderBuyer" FromRole="Order" ToRole="Customer"/>
   </EntityType>
   <EntityType Name="Item">
    <Key><PropertyRef Name="Number"/><PropertyRef Name="Line"/></Key>
    <Property Name="Number" Type="Edm.String" Nullable="false" MaxLength="10"/>
    <Property Name="Line" Type="Edm.Int32" Nullable="false"/>
    <Property Name="Product" Type="Edm.String" MaxLength="18"/>
    <Property Name="Price" Type="Edm.Decimal" Precision="9" Scale="2"/>
   </EntityType>
   <EntityType Name="Customer">
    <Key><PropertyRef Name="Id"/></Key>
    <Property Name="Id" Type="Edm.String" Nullable="false" MaxLength="8"/>
    <Property Name="Name" Type="Edm.String" MaxLength="40"/>
   </EntityType>
   <EntityType Name="Company" BaseType="ERP.Customer">
    <Property Name="Vat" Type="Edm.String" MaxLength="20"/>
   </EntityType>
   <EntityType Name="Silent">
    <Key><PropertyRef Name="Id"/></Key>
    <Property Name="Id" Type="Edm.String" Nullable="false" sap:creatable="false"/>
    <Property Name="Text" Type="Edm.String" sap:creatable="false"/>
   </EntityType>
   <ComplexType Name="Address">
    <Property Name="Street" Type="Edm.String" MaxLength="30"/>
    <Property Name="City" Type="Edm.String" MaxLength="20"/>
   </ComplexType>
   <Association Name="OrderItems">
    <End Type="ERP.Order" Multiplicity="1" Role="Order"/><End Type="ERP.Item" Multiplicity="*" Role="Item"/>
    <ReferentialConstraint>
     <Principal Role="Order"><PropertyRef Name="Number"/></Principal>
     <Dependent Role="Item"><PropertyRef Name="Number"/></Dependent>
    </ReferentialConstraint>
   </Association>
   <Association Name="OrderBuyer">
    <End Type="ERP.Order" Multiplicity="*" Role="Order"/>
    <End Type="ERP.Customer" Multiplicity="0..1" Role="Customer"/>
    <ReferentialConstraint>
     <Principal Role="Customer"><PropertyRef Name="Id"/></Principal>
     <Dependent Role="Order"><PropertyRef Name="Customer"/></Dependent>
    </ReferentialConstraint>
   </Association>
   <EntityContainer Name="ERP_Entities" m:IsDefaultEntityContainer="true">
    <EntitySet Name="OrderSet" EntityType="ERP.Order"/>
    <EntitySet Name="ItemSet" EntityType="ERP.Item"/>
    <EntitySet Name="CustomerSet" EntityType="ERP.Customer"/>
    <EntitySet Name="SilentSet" EntityType="ERP.Silent"/>
    <AssociationSet Name="OrderItemsSet" Association="ERP.OrderItems">
     <End EntitySet="OrderSet" Role="Order"/><End EntitySet="ItemSet" Role="Item"/>
    </AssociationSet>
    <AssociationSet Name="OrderBuyerSet" Association="ERP.OrderBuyer">
     <End EntitySet="OrderSet" Role="Order"/><End EntitySet="CustomerSet" Role="Customer"/>
    </AssociationSet>
   </EntityContainer>
  </Schema>
 </edmx:DataServices>
</edmx:Edmx>
"""

V4 = b"""<?xml version="1.0" encoding="utf-8"?>
<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx">
 <edmx:Reference Uri="https://example.com/Core.xml">
  <edmx:Include Namespace="Org.OData.Core.V1" Alias="C"/></edmx:Reference>
 <edmx:Reference Uri="https://example.com/Common.xml">
  <edmx:Include Namespace="com.sap.vocabularies.Common.v1" Alias="Common"/></edmx:Reference>
 <edmx:Reference Uri="https://example.com/Own.xml">
  <edmx:Include Namespace="com.example.Own" Alias="Own"/></edmx:Reference>
 <edmx:DataServices>
  <Schema Namespace="Shop" Alias="S" xmlns="http://docs.oasis-open.org/odata/ns/edm">
   <EnumType Name="Colour"><Member Name="Red" Value="1"/><Member Name="Green" Value="2"/></EnumType>
   <EnumType Name="Days" IsFlags="true"><Member Name="Mon" Value="1"/><Member Name="Tue" Value="2"/></EnumType>
   <TypeDefinition Name="Money" UnderlyingType="Edm.Decimal" Precision="11" Scale="2"/>
   <ComplexType Name="Address">
    <Property Name="Street" Type="Edm.String" MaxLength="30"/><Property Name="Lines" Type="Collection(Edm.String)"/>
   </ComplexType>
   <EntityType Name="Base" Abstract="true">
    <Key><PropertyRef Name="ID"/></Key>
    <Property Name="ID" Type="Edm.Guid" Nullable="false"><Annotation Term="C.ComputedDefaultValue"/></Property>
    <Property Name="createdAt" Type="Edm.DateTimeOffset" Precision="3">
     <Annotation Term="C.Computed" Bool="true"/></Property>
   </EntityType>
   <EntityType Name="Order" BaseType="S.Base">
    <Property Name="name" Type="Edm.String" MaxLength="10" Nullable="false"/>
    <Property Name="price" Type="S.Money"/>
    <Property Name="exact" Type="Edm.Decimal" Precision="34" Scale="variable"/>
    <Property Name="count" Type="Edm.Int64"/>
    <Property Name="colour" Type="S.Colour" DefaultValue="Red"/>
    <Property Name="days" Type="S.Days"/>
    <Property Name="on" Type="Edm.Date"/>
    <Property Name="at" Type="Edm.TimeOfDay"/>
    <Property Name="seen" Type="Edm.DateTimeOffset" Precision="3"/>
    <Property Name="plain" Type="Edm.DateTimeOffset"/>
    <Property Name="lasts" Type="Edm.Duration"/>
    <Property Name="raw" Type="Edm.Binary"/>
    <Property Name="home" Type="S.Address"/>
    <Property Name="tags" Type="Collection(Edm.String)"/>
    <Property Name="country" Type="Edm.String"/>
    <Property Name="state" Type="Edm.String"/>
    <Property Name="owner_id" Type="Edm.String" MaxLength="8"/>
    <Property Name="locked" Type="Edm.String">
     <Annotation Term="C.Permissions"><EnumMember>Org.OData.Core.V1.Permission/Read</EnumMember></Annotation></Property>
    <NavigationProperty Name="items" Type="Collection(S.Item)" Partner="order" ContainsTarget="true"/>
    <NavigationProperty Name="owner" Type="S.Person" Partner="orders">
     <ReferentialConstraint Property="owner_id" ReferencedProperty="id"/></NavigationProperty>
    <NavigationProperty Name="helper" Type="S.Person"/>
   </EntityType>
   <EntityType Name="Item">
    <Key><PropertyRef Name="pos"/></Key>
    <Property Name="pos" Type="Edm.Int32" Nullable="false"/><Property Name="price" Type="S.Money"/>
    <NavigationProperty Name="order" Type="S.Order" Partner="items"/>
   </EntityType>
   <EntityType Name="Person" OpenType="true">
    <Key><PropertyRef Name="id"/></Key>
    <Property Name="id" Type="Edm.String" Nullable="false" MaxLength="8"/>
    <NavigationProperty Name="orders" Type="Collection(S.Order)" Partner="owner"/>
   </EntityType>
   <EntityType Name="Country">
    <Key><PropertyRef Name="code"/></Key><Property Name="code" Type="Edm.String" Nullable="false"/></EntityType>
   <EntityType Name="Pair">
    <Key><PropertyRef Name="a"/><PropertyRef Name="b"/></Key>
    <Property Name="a" Type="Edm.String" Nullable="false"/><Property Name="b" Type="Edm.Date" Nullable="false"/>
   </EntityType>
   <EntityContainer Name="Container">
    <EntitySet Name="Orders" EntityType="S.Order">
     <NavigationPropertyBinding Path="owner" Target="People"/><NavigationPropertyBinding Path="helper" Target="People"/>
    </EntitySet>
    <EntitySet Name="People" EntityType="S.Person">
     <NavigationPropertyBinding Path="orders" Target="Orders"/></EntitySet>
    <EntitySet Name="Countries" EntityType="S.Country"/>
    <EntitySet Name="Pairs" EntityType="S.Pair"/>
   </EntityContainer>
   <Annotations Target="S.Order/name"><Annotation Term="Common.Label" String="Order name"/></Annotations>
   <Annotations Target="S.Order/price"><Annotation Term="Own.Label" String="not ours"/></Annotations>
   <Annotations Target="S.Container/Orders"><Annotation Term="C.Description" String="All orders"/></Annotations>
   <Annotations Target="S.Order/state"><Annotation Term="Validation.AllowedValues"><Collection>
     <Record><PropertyValue Property="Value" String="open"/></Record>
     <Record><PropertyValue Property="Value" String="done"/></Record></Collection></Annotation></Annotations>
   <Annotations Target="S.Order/country"><Annotation Term="Common.ValueList"><Record>
     <PropertyValue Property="CollectionPath" String="Countries"/>
     <PropertyValue Property="Parameters"><Collection><Record Type="Common.ValueListParameterInOut">
      <PropertyValue Property="LocalDataProperty" PropertyPath="country"/>
      <PropertyValue Property="ValueListProperty" String="code"/></Record></Collection></PropertyValue></Record>
    </Annotation>
   </Annotations>
  </Schema>
 </edmx:DataServices>
</edmx:Edmx>
"""
